"""gRPC over HTTP/2 as far as both sides share it: messages after their prefixes, and statuses. No connection here."""
