"""What a gateway says of its work: lines, measures and spans."""
