DESCRIPTION: dict[str, object] = {}
