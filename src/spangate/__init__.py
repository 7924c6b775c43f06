"""spangate: decides whether an AI-agent run may be believed, in the OpenTelemetry SDK that the run already uses."""
