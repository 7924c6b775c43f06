"""The configurations in collector-config, each in a real OpenTelemetry Collector, between a real gate and a backend."""
