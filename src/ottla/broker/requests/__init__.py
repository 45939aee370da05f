"""The request pipeline."""
