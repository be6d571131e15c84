// Owns the precompiled header that the tests reuse; a source file is what a target needs to have one.
