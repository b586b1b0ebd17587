"""Inboxes of Linked Data Notifications, read again and again."""
