"""What tests of the page share."""
