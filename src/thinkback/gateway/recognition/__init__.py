"""Which conversation a request goes on with, found by what its client sends back."""
