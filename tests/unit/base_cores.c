#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/cores.h"
#include "base/memory.h"
#include "base/pool.h"

static char root[] = "/tmp/motet-cores-XXXXXX";

/* Writes a file below root, with its folders. */
static void put(const char *name, const char *content)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void put_capacity(int core, int capacity)
{
    char name[96], content[16];

    snprintf(name, sizeof(name), "/sys/devices/system/cpu/cpu%d/cpu_capacity", core);
    snprintf(content, sizeof(content), "%d\n", capacity);
    put(name, content);
}

static int make_root(void **state)
{
    (void)state;
    memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static const unsigned char all[8] = {1, 1, 1, 1, 1, 1, 1, 1};

static void cores_that_are_alike_all_count(void **state)
{
    static const unsigned char some[8] = {0, 1, 1, 0, 0, 0, 0, 1};

    (void)state;
    assert_int_equal(mt_cores_fast_at(root, all, 8), 8);
    assert_int_equal(mt_cores_fast_at(root, some, 8), 3);
    assert_int_equal(mt_cores_fast_at(root, all, 0), 1);
}

static void only_the_fastest_allowed_count(void **state)
{
    static const unsigned char no_big[8] = {1, 1, 1, 1, 1, 1, 0, 0};

    (void)state;
    for (int i = 0; i < 8; i++)
        put_capacity(i, i < 4 ? 300 : i < 6 ? 700 : 1024);
    assert_int_equal(mt_cores_fast_at(root, all, 8), 2);
    assert_int_equal(mt_cores_fast_at(root, no_big, 8), 2);
    assert_int_equal(mt_cores_fast_at(root, all, 4), 4);
}

static void the_quota_caps(void **state)
{
    static const struct {
        const char *max;
        size_t cores;
    } rows[] = {
        {"max 100000\n", 8},    {"300000 100000\n", 3}, {"399999 100000\n", 3}, {"50000 100000\n", 1},
        {"1600000 50000\n", 8}, {"100 0\n", 8},         {"nonsense\n", 8},      {"", 8},
    };

    (void)state;
    put("/proc/self/cgroup", "1:cpu:/old\n0::/a/b\n");
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        put("/sys/fs/cgroup/a/b/cpu.max", rows[i].max);
        assert_int_equal(mt_cores_fast_at(root, all, 8), rows[i].cores);
    }
}

static void the_tightest_quota_of_the_groups_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/cpu.max", "600000 100000\n");
    assert_int_equal(mt_cores_fast_at(root, all, 8), 6);
    put("/sys/fs/cgroup/a/b/cpu.max", "500000 100000\n");
    assert_int_equal(mt_cores_fast_at(root, all, 8), 5);
    put("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
    assert_int_equal(mt_cores_fast_at(root, all, 8), 2);
}

static void memory_is_what_the_groups_allow(void **state)
{
    const uint64_t machine = 64ull << 30;

    (void)state;
    assert_int_equal(mt_memory_total_at(root, machine), machine);
    put("/proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(mt_memory_total_at(root, machine), machine);
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(mt_memory_total_at(root, machine), machine);
    put("/sys/fs/cgroup/a/b/memory.max", "17179869184\n");
    assert_int_equal(mt_memory_total_at(root, machine), 16ull << 30);
    put("/sys/fs/cgroup/a/memory.max", "8589934592\n");
    assert_int_equal(mt_memory_total_at(root, machine), 8ull << 30);
    put("/sys/fs/cgroup/memory.max", "999999999999999\n");
    assert_int_equal(mt_memory_total_at(root, machine), 8ull << 30);
    assert_int_equal(mt_memory_total_at(root, 4ull << 30), 4ull << 30);
}

/* A container sees its own group as the first, and may be told the machine's path of it. */
static void memory_is_what_older_groups_allow(void **state)
{
    const uint64_t machine = 64ull << 30;

    (void)state;
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n");
    put("/proc/self/cgroup", "3:cpuset,memories:/y\n1:name=memory:/x\n");
    assert_int_equal(mt_memory_total_at(root, machine), machine);
    put("/proc/self/cgroup", "3:cpu,cpuacct:/y\n2:hugetlb,memory:/docker/0123\n1:name=systemd:/x\n");
    assert_int_equal(mt_memory_total_at(root, machine), 4ull << 30);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(mt_memory_total_at(root, machine), machine);
}

static void this_machine_has_memory(void **state)
{
    (void)state;
    assert_in_range(mt_memory_total(), 1u << 20, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_int_equal(mt_memory_total(), mt_memory_total());
}

static void this_machine_has_cores(void **state)
{
    (void)state;
    assert_true(mt_cores_allowed() >= 1);
    assert_in_range(mt_cores_fast(), 1, mt_cores_allowed());
    assert_in_range(mt_pool_default_threads(), 1, mt_cores_allowed());
}

static void the_clock_moves_forward(void **state)
{
    uint64_t before = mt_clock_ns();

    (void)state;
    usleep(1000);
    assert_true(mt_clock_ns() >= before + 1000000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
static const struct CMUnitTest tests[] = {
    TEST(cores_that_are_alike_all_count),
    TEST(only_the_fastest_allowed_count),
    TEST(the_quota_caps),
    TEST(the_tightest_quota_of_the_groups_counts),
    TEST(memory_is_what_the_groups_allow),
    TEST(memory_is_what_older_groups_allow),
    cmocka_unit_test(this_machine_has_memory),
    cmocka_unit_test(this_machine_has_cores),
    cmocka_unit_test(the_clock_moves_forward),
};
UNIT_MAIN(tests)
