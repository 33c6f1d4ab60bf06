"""The pure core: rules and values that need neither Django nor Redis."""
