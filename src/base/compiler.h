/* Compiler extensions; only this file and src/kernels name any. */
#ifndef MT_BASE_COMPILER_H
#define MT_BASE_COMPILER_H

#define MT_NODISCARD __attribute__((warn_unused_result))
#define MT_NORETURN __attribute__((noreturn))
#define MT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MT_ALIGNED(n) __attribute__((aligned(n)))
#define MT_UNUSED __attribute__((unused))
#define MT_THREAD_LOCAL _Thread_local

/* Tells the processor that it is in a waiting loop. On ARM `isb` waits a little, while `yield` does nothing. */
#if defined(__aarch64__)
#define MT_RELAX() __asm__ volatile("isb")
#elif defined(__x86_64__)
#define MT_RELAX() __builtin_ia32_pause()
#else
#define MT_RELAX() ((void)0)
#endif

/* Adds a word (uint64_t) to a CRC32C, held in a uint64_t whose upper half is 0. Not every processor can: see
   crc32c.c. */
#if defined(__aarch64__) && !defined(__ARM_BIG_ENDIAN)
#define MT_CRC32C_WORD(sum, word) __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word))
#elif defined(__x86_64__)
#define MT_CRC32C_WORD(sum, word) __asm__("crc32q %1, %0" : "+r"(sum) : "rm"(word))
#define MT_CRC32C_CAN() (__builtin_cpu_supports("sse4.2") != 0)
#endif

/* Whether a sanitizer is used, which has its own handlers for crashes and reports to standard error; the build defines
   MT_SANITIZED, since compilers do not tell of the one for undefined behaviour. Which of them: of the address and the
   thread sanitizer compilers tell, in two ways. */
#ifndef MT_SANITIZED
#define MT_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MT_SANITIZED_ADDRESS 1
#elif defined(__SANITIZE_THREAD__)
#define MT_SANITIZED_THREAD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MT_SANITIZED_ADDRESS 1
#elif __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define MT_SANITIZED_THREAD 1
#endif
#endif
#ifndef MT_SANITIZED_ADDRESS
#define MT_SANITIZED_ADDRESS 0
#endif
#ifndef MT_SANITIZED_THREAD
#define MT_SANITIZED_THREAD 0
#endif

/* Bytes that two threads should not both write: a cache line and its neighbour, which is fetched with it */
#define MT_CACHE_LINE 128

/* Put the result into *out; true where it does not fit. */
#define MT_ADD_OVERFLOWS(a, b, out) __builtin_add_overflow(a, b, out)
#define MT_SUB_OVERFLOWS(a, b, out) __builtin_sub_overflow(a, b, out)
#define MT_MUL_OVERFLOWS(a, b, out) __builtin_mul_overflow(a, b, out)

/* One of the arguments is evaluated twice. */
#define MT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MT_MAX(a, b) ((a) > (b) ? (a) : (b))

#define MT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
