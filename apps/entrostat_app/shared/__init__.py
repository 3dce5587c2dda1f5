"""Parts shared by several pages."""
