"""What is known of the SDK beyond what it promises: its fields, its oddities, its processors and exporters."""
