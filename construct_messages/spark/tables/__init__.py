"""Tables from queries and messages: typed columns, structs and JSON documents."""
