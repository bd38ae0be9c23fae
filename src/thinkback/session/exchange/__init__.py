"""Sessions to files and back: JSON Lines in and out, Parquet and transcripts out."""
