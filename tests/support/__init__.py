"""What the tests share: cases, strategies, engines, servers. No tests here."""
