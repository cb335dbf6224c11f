"""The twin behind Franka's own protocol (FCI): see docs/guides/fci-twin.md."""
