//! What the revisions say.
