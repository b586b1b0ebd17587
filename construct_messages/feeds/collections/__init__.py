"""Collections of others as streams: Linked Data Event Streams, and inboxes of Linked Data Notifications."""
