// The source file of the precompiled header.
