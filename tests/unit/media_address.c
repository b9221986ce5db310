#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "media/address.h"

static mt_address_reach reach_of(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return mt_address_reach_of((struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return mt_address_reach_of((struct sockaddr *)&v6);
}

static void private_networks_reach_further_than_this_machine(void **state)
{
    static const struct {
        const char *text;
        mt_address_reach reach;
    } rows[] = {
        {"8.8.8.8", MT_ADDRESS_PUBLIC},
        {"2a00:1450::200e", MT_ADDRESS_PUBLIC},
        {"10.1.2.3", MT_ADDRESS_PRIVATE},
        {"100.64.0.1", MT_ADDRESS_PRIVATE},
        {"172.31.255.255", MT_ADDRESS_PRIVATE},
        {"192.168.0.1", MT_ADDRESS_PRIVATE},
        {"fc00::1", MT_ADDRESS_PRIVATE},
        {"fdff::1", MT_ADDRESS_PRIVATE},
        {"127.0.0.1", MT_ADDRESS_MACHINE},
        {"0.0.0.0", MT_ADDRESS_MACHINE},
        {"169.254.169.254", MT_ADDRESS_MACHINE},
        {"192.0.0.192", MT_ADDRESS_MACHINE},
        {"::1", MT_ADDRESS_MACHINE},
        {"fe80::1", MT_ADDRESS_MACHINE},
        {"::ffff:10.0.0.1", MT_ADDRESS_MACHINE},
        {"64:ff9b::a00:1", MT_ADDRESS_MACHINE},
        {"224.0.0.1", MT_ADDRESS_MACHINE},
        {"fbff::1", MT_ADDRESS_MACHINE},
        {"2002:a00:1::", MT_ADDRESS_MACHINE},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        if (reach_of(rows[i].text) != rows[i].reach)
            fail_msg("%s", rows[i].text);
}

static void the_internet_is_public(void **state)
{
    static const char *const all[] = {
        "1.1.1.1",        "8.8.8.8",
        "9.255.255.255",  "11.0.0.0",
        "100.63.255.255", "100.128.0.0",
        "126.0.0.1",      "128.0.0.1",
        "169.253.0.1",    "169.255.0.1",
        "172.15.255.255", "172.32.0.0",
        "192.0.1.1",      "192.167.1.1",
        "192.169.0.0",    "198.17.255.255",
        "198.20.0.0",     "223.255.255.255",
        "2600:1901::1",   "2a00:1450::200e",
        "2001:200::1",    "2001:4860:4860::8888",
        "2003::1",        "3fff:1000::1",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (reach_of(all[i]) != MT_ADDRESS_PUBLIC)
            fail_msg("%s is not public", all[i]);
}

static void the_rest_is_not(void **state)
{
    static const char *const all[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:808:808::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (reach_of(all[i]) == MT_ADDRESS_PUBLIC)
            fail_msg("%s is public", all[i]);
}

static void other_families_are_not(void **state)
{
    struct sockaddr unix_like = {.sa_family = AF_UNIX};

    (void)state;
    assert_false(mt_address_is_public(&unix_like));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(private_networks_reach_further_than_this_machine),
    cmocka_unit_test(the_internet_is_public),
    cmocka_unit_test(the_rest_is_not),
    cmocka_unit_test(other_families_are_not),
};
UNIT_MAIN(tests)
