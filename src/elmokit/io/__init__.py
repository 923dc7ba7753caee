"""Files and terminals: reading text, writing atomically, resumable jobs, progress, figures."""
