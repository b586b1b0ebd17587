"""Topics of MQTT 5."""
