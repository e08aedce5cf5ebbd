#pragma once
// Builds a kernel once for every generation of processors and lets the loader pick. Sanitizers cannot run the
// resolvers this needs, because those run before the sanitizer itself.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define CFMAPS_FOR_EVERY_PROCESSOR __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CFMAPS_FOR_EVERY_PROCESSOR
#endif
