"""History and what is shown of it: the journal, its folds, and later metrics and W&B. Nothing here decides."""
