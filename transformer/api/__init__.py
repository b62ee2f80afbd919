"""The engine over HTTP: what browsers, notebooks and other programs ask a model, at addresses that are a contract."""
