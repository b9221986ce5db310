/* Which addresses are on the internet and which are somebody's own. */
#ifndef MT_MEDIA_ADDRESS_H
#define MT_MEDIA_ADDRESS_H

#include <stdbool.h>

#include <sys/socket.h>

/* Whether a packet to the address leaves for the public internet: not this machine, its networks, a provider's
   translation, a cloud's metadata service, a multicast group, or an IPv6 form that hides an IPv4 address. */
bool mt_address_is_public(const struct sockaddr *address);

#endif
