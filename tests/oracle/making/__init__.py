"""What make.py is made of: number formats, checkpoint layouts, random models, the record of what transformers says."""
