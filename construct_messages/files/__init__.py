"""Files: which are packed and how, one that is whole or not there, one that grows. Nothing about what files hold."""
