"""Files: which are packed and how, one that is whole or not there, and one that grows. Nothing about what files hold."""
