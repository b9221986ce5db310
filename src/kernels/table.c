/* Fills the kernel table by the processor's features (kernels.h). Stateless: the table belongs to the caller. */
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

#include "kernels/levels.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

static const struct {
    const char *name;
    unsigned bit, needs;
} features[] = {
    {"neon", MT_CPU_NEON, 0},
    {"dotprod", MT_CPU_DOTPROD, MT_CPU_NEON},
    {"fp16", MT_CPU_FP16, MT_CPU_NEON},
    {"i8mm", MT_CPU_I8MM, MT_CPU_DOTPROD},
    {"bf16", MT_CPU_BF16, MT_CPU_NEON},
    {"avx2", MT_CPU_AVX2, 0},
    {"avxvnni", MT_CPU_AVXVNNI, MT_CPU_AVX2},
    {"avx512", MT_CPU_AVX512, MT_CPU_AVX2},
    {"avx512vnni", MT_CPU_AVX512VNNI, MT_CPU_AVX512},
    {"amx", MT_CPU_AMX, MT_CPU_AVX512VNNI},
};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

#if defined(__aarch64__) && defined(__linux__)

unsigned mt_cpu_detect(void)
{
    unsigned long hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
    unsigned cpu = MT_CPU_NEON;
    if (hwcap & (1ul << 20)) /* HWCAP_ASIMDDP; as a number, since older C libraries lack the name */
        cpu |= MT_CPU_DOTPROD;
    if (hwcap & (1ul << 10)) /* HWCAP_ASIMDHP */
        cpu |= MT_CPU_FP16;
    if (hwcap2 & (1ul << 13)) /* HWCAP2_I8MM */
        cpu |= MT_CPU_I8MM;
    if (hwcap2 & (1ul << 14)) /* HWCAP2_BF16 */
        cpu |= MT_CPU_BF16;
    return cpu;
}

#elif defined(__aarch64__) && defined(__APPLE__)

static unsigned if_set(const char *name, unsigned bit)
{
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value ? bit : 0;
}

unsigned mt_cpu_detect(void)
{
    return MT_CPU_NEON | if_set("hw.optional.arm.FEAT_DotProd", MT_CPU_DOTPROD) |
           if_set("hw.optional.arm.FEAT_FP16", MT_CPU_FP16) | if_set("hw.optional.arm.FEAT_I8MM", MT_CPU_I8MM) |
           if_set("hw.optional.arm.FEAT_BF16", MT_CPU_BF16);
}

#elif defined(__aarch64__)

unsigned mt_cpu_detect(void)
{
    return MT_CPU_NEON;
}

#elif defined(__x86_64__)

static unsigned xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Whether threads of this process may use tiles: Linux wants to be asked, once, as it keeps 8 KiB more for each. */
static bool tiles_allowed(void)
{
#if defined(__linux__)
    const unsigned tiles = 0x60000;         /* register state that the system saves */
    const long request = 0x1023, data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA; older headers lack the names */
    return (xcr0() & tiles) == tiles && syscall(SYS_arch_prctl, request, data) == 0;
#else
    return false;
#endif
}

unsigned mt_cpu_detect(void)
{
    const unsigned ymm = 0x6, zmm = 0xe6;                               /* register state that the system saves */
    const unsigned osxsave = 1u << 27, fma = 1u << 12, f16c = 1u << 29; /* leaf 1, ecx */
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  /* leaf 7, ebx: F, DQ, BW, VL */
    const unsigned avx2 = 1u << 5, vnni = 1u << 11;                     /* leaf 7, ebx; ecx */
    const unsigned amx = 1u << 22 | 1u << 24 | 1u << 25;                /* leaf 7, edx: BF16, TILE, INT8 */
    unsigned a, b, c, d, a7, b7, c7, d7, cpu = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (osxsave | fma | f16c)) != (osxsave | fma | f16c))
        return 0;
    if (!__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7) || !(b7 & avx2) || (xcr0() & ymm) != ymm)
        return 0;
    cpu |= MT_CPU_AVX2;
    if (a7 >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4)
        cpu |= MT_CPU_AVXVNNI;
    if ((b7 & avx512) != avx512 || (xcr0() & zmm) != zmm)
        return cpu;
    cpu |= MT_CPU_AVX512;
    if (c7 & vnni)
        cpu |= MT_CPU_AVX512VNNI;
    if ((d7 & amx) == amx && tiles_allowed())
        cpu |= MT_CPU_AMX;
    return cpu;
}

#else

unsigned mt_cpu_detect(void)
{
    return 0;
}

#endif

const char *mt_cpu_names(unsigned cpu, char *buf, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < FEATURES; i++) {
        if (!(cpu & features[i].bit) || used >= size)
            continue;
        int n = snprintf(buf + used, size - used, "%s%s", used ? "," : "", features[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used == 0 && size > 0)
        snprintf(buf, size, "portable");
    return buf;
}

static bool parse_name(const char *name, size_t length, unsigned *mask)
{
    if (length == 3 && memcmp(name, "all", 3) == 0) {
        *mask = ~0u;
        return true;
    }
    if (length == 8 && memcmp(name, "portable", 8) == 0)
        return true;
    for (size_t i = 0; i < FEATURES; i++) {
        if (strlen(features[i].name) == length && memcmp(features[i].name, name, length) == 0) {
            *mask |= features[i].bit;
            return true;
        }
    }
    return false;
}

bool mt_cpu_parse(const char *list, unsigned *mask)
{
    unsigned found = 0;
    for (const char *name = list;;) {
        size_t length = strcspn(name, ",");
        if (!parse_name(name, length, &found))
            return false;
        if (name[length] == '\0')
            break;
        name += length + 1;
    }
    *mask = found;
    return true;
}

/* Drops features whose level builds on one that is missing. */
static unsigned usable(unsigned cpu)
{
    unsigned use = 0;
    for (size_t i = 0; i < FEATURES; i++)
        if (cpu & features[i].bit && (use & features[i].needs) == features[i].needs)
            use |= features[i].bit;
    return use;
}

void mt_kernels_init(mt_kernels *k, unsigned cpu)
{
#define PORTABLE(result, name, args) k->name = mt_##name##_portable;
    MT_KERNELS(PORTABLE)
#undef PORTABLE
    k->cpu = usable(cpu);
#if defined(__aarch64__)
    mt_kernels_init_arm(k);
#elif defined(__x86_64__)
    mt_kernels_init_x86(k);
#endif
}

unsigned mt_kernels_r5_level(const mt_kernels *k)
{
    return k->cpu & MT_CPU_BF16 ? 1 : k->cpu & MT_CPU_AMX ? 2 : 0;
}
