"""The second part of clark2019: heads as parsers, coreference, attention probes (§4 and §5)."""
