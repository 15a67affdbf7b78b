"""What happens, as it happens, for many who look."""
