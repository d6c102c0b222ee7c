// Carries the precompiled header only.
