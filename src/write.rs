//! Writing: data files with statistics that others can trust, and the actions that name them.
