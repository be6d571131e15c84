// Owns the precompiled header that the tests reuse.
int main() { return 0; }
