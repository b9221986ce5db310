/* What a service manager is told, at a socket of ours. */
#include "folder.h"

#include <unistd.h>

#include "server/notify.h"

static const char *socket_name, *usec, *pid;

static char *fake_env(const char *name)
{
    const char *value = NULL;

    if (strcmp(name, "NOTIFY_SOCKET") == 0)
        value = socket_name;
    if (strcmp(name, "WATCHDOG_USEC") == 0)
        value = usec;
    if (strcmp(name, "WATCHDOG_PID") == 0)
        value = pid;
    return (char *)(uintptr_t)value;
}

/* A bound socket; '@' in front: no file. */
static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    memcpy(address.sun_path, name, strlen(name) + 1);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)&address, name[0] == '@' ? len : len + 1), 0);
    return fd;
}

static void expect(int fd, const char *message)
{
    char text[2048] = {0};

    assert_true(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, message);
}

static void messages_arrive(const char *name)
{
    mt_notify n;
    int fd = listen_at(name);

    socket_name = name;
    mt_notify_open(&n, fake_env);
    mt_notify_send(&n, "READY=1\nSTATUS=serving \"%s\"", "a b");
    expect(fd, "READY=1\nSTATUS=serving \"a b\"");
    mt_notify_progress(&n, "reading weights", 42);
    expect(fd, "STATUS=reading weights: 42 %\nEXTEND_TIMEOUT_USEC=60000000");
    close(fd);
    mt_notify_send(&n, "STOPPING=1"); /* nobody is there any more: no harm */
    mt_notify_close(&n);
    mt_notify_send(&n, "STOPPING=1");
    socket_name = NULL;
}

static void to_a_file_and_to_a_name(void **state)
{
    char name[128];

    (void)state;
    snprintf(name, sizeof(name), "%s/notify", folder);
    messages_arrive(name);
    snprintf(name, sizeof(name), "@motet-test-%d", (int)getpid());
    messages_arrive(name);
}

static void nobody_listens(void **state)
{
    static const char *const names[] = {NULL, "", "/", "relative", "vsock:2:1"};
    mt_notify n = {0};

    (void)state;
    mt_notify_send(&n, "READY=1"); /* one that was never opened */
    mt_notify_close(&n);
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        socket_name = names[i];
        mt_notify_open(&n, fake_env);
        assert_int_equal(n.fd, -1);
        mt_notify_send(&n, "READY=1");
        mt_notify_close(&n);
    }
    socket_name = NULL;
}

static uint64_t watchdog(const char *time, const char *process)
{
    mt_notify n;
    uint64_t ns;

    usec = time;
    pid = process;
    socket_name = "@nobody";
    mt_notify_open(&n, fake_env);
    ns = n.watchdog_ns;
    mt_notify_close(&n);
    return ns;
}

static void the_watchdog_is_meant_for_us(void **state)
{
    char ours[32];

    (void)state;
    snprintf(ours, sizeof(ours), "%d", (int)getpid());
    assert_int_equal(watchdog("30000000", NULL), UINT64_C(30000000000));
    assert_int_equal(watchdog("30000000", ours), UINT64_C(30000000000));
    assert_int_equal(watchdog("30000000", "1"), 0);
    assert_int_equal(watchdog(NULL, ours), 0);
    assert_int_equal(watchdog("0", NULL), 0);
    assert_int_equal(watchdog("3x", NULL), 0);
    assert_int_equal(watchdog("-3", NULL), 0);
    assert_int_equal(watchdog("99999999999999999999", NULL), 0);
}

static void alive_is_who_waits_or_goes_on(void **state)
{
    const mt_notify n = {.watchdog_ns = 1000};

    (void)state;
    assert_true(mt_notify_alive(&n, 5000, 0)); /* waits for something to do */
    assert_true(mt_notify_alive(&n, 5000, 4000));
    assert_false(mt_notify_alive(&n, 5001, 4000));
    assert_true(mt_notify_alive(&n, 4000, 4001)); /* began while the clock was read */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(to_a_file_and_to_a_name, make_folder, remove_folder),
    cmocka_unit_test(nobody_listens),
    cmocka_unit_test(the_watchdog_is_meant_for_us),
    cmocka_unit_test(alive_is_who_waits_or_goes_on),
};
UNIT_MAIN(tests)
