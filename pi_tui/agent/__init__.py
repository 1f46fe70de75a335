"""What is happening: order, cancellation and durability of everything a session does."""
