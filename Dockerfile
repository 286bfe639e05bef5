# The demo in the browser: docker build -t headscope . && docker run --rm -p 8642:8642 headscope
# It prints the address with its token; open that address on your machine.
FROM python:3.12-slim

RUN useradd --create-home --uid 1000 reader
WORKDIR /app
COPY pyproject.toml constraints.txt README.md CHANGELOG.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve]"

# By number, so that a cluster that allows no root can see that this is none.
USER 1000
WORKDIR /home/reader
# Both studies on both bundled models; nothing is downloaded.
RUN headscope demo --out demo

EXPOSE 8642
CMD ["sh", "-c", "exec headscope serve demo/*2019-mini-* --model mini-gpt2 --host 0.0.0.0 --port 8642 --no-browser"]
