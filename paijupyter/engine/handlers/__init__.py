"""The functions behind the routes: each reads its call, asks the service and returns a reply."""
