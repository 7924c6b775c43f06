"""OTLP as JSON lines and as protobuf: read into records, and written."""
