"""A searchable index of every token of a text."""
