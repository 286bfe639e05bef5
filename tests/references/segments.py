"""The segments of a part of a corpus as texts."""

from headscope.text.corpus import Shard
from headscope.text.segments import Segment, Segments, segment_of


def starting_in(segments: Segments, start: int, stop: int) -> list[Segment]:
    """Segments whose first sentence is one of start to stop (exclusive)."""
    return [
        segment_of(each, segments.corpus.read(Shard(0, each.start, each.stop)))
        for each in segments.ranges_in(start, stop)
    ]
