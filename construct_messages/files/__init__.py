"""Files: which are packed and how, and a file that is whole or not there. Nothing about what files hold."""
