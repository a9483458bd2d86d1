"""The published data sets, from their publishers: with licence, checksum and resumption."""
