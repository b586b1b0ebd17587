"""Inboxes of Linked Data Notifications, by polling."""
