/* See tls.h. */
#include "http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"

struct mt_http_tls {
    SSL_CTX *context;
};

/* A key with a passphrase is an error, instead of a question on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *user)
{
    (void)buffer, (void)size, (void)writing, (void)user;
    return -1;
}

/* Chooses HTTP/1.1 where the client offers a choice of protocols (ALPN). */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned in_len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    int found = SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len);

    (void)ssl, (void)user;
    *out = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

/* Whether a file can be read: the system's error is clearer than OpenSSL's. Reading anything but a regular file could
   take for ever, while a server that reloads has answers to give. */
static bool check_readable(const char *what, const char *path, mt_error *err)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    bool regular;

    if (file < 0)
        return mt_fail(err, MT_E_IO, "%s \"%s\" cannot be read: %s", what, path, strerror(errno));
    regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    close(file);
    return regular || mt_fail(err, MT_E_IO, "%s \"%s\" is no regular file: give a PEM file", what, path);
}

static bool load(SSL_CTX *context, const char *certificate, const char *key, mt_error *err)
{
    bool read; /* the key, which may be that of another certificate */

    if (!check_readable("certificate file", certificate, err) || !check_readable("key file", key, err))
        return false;
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return mt_fail(err, MT_E_INVALID,
                       "certificate file \"%s\" holds no certificate that can be used: give a PEM file", certificate);
    ERR_clear_error();
    read = SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
    if (read && SSL_CTX_check_private_key(context) == 1)
        return true;
    if (read || ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return mt_fail(err, MT_E_INVALID,
                       "key file \"%s\" does not belong to certificate \"%s\": give the key it was made with", key,
                       certificate);
    return mt_fail(err, MT_E_INVALID,
                   "key file \"%s\" holds no key that can be used: give a PEM file without a passphrase", key);
}

mt_http_tls *mt_http_tls_new(const char *certificate, const char *key, mt_error *err)
{
    mt_http_tls *tls = mt_alloc(sizeof(*tls));
    bool ok;

    tls->context = SSL_CTX_new(TLS_server_method());
    if (!tls->context) {
        mt_fail(err, MT_E_IO, "TLS cannot be set up: check the system's OpenSSL configuration");
        mt_free(tls);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS); /* an idle connection costs little */
    SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, NULL);
    ok = load(tls->context, certificate, key, err);
    ERR_clear_error();
    if (ok)
        return tls;
    mt_http_tls_free(tls);
    return NULL;
}

void mt_http_tls_free(mt_http_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    mt_free(tls);
}

struct bufferevent *mt_http_tls_bufferevent(mt_http_tls *tls, struct event_base *loop, int fd)
{
    enum { OPTIONS = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS };
    SSL *ssl = tls ? SSL_new(tls->context) : NULL;
    struct bufferevent *bev = NULL;

    if (!tls)
        bev = bufferevent_socket_new(loop, fd, OPTIONS);
    else if (ssl)
        bev = bufferevent_openssl_socket_new(loop, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, OPTIONS);
    if (!bev) {
        SSL_free(ssl);
        close(fd);
    }
    return bev;
}

void mt_http_tls_shut(struct bufferevent *bev)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);

    if (!ssl)
        return;
    SSL_shutdown(ssl);
    ERR_clear_error(); /* a client that has left is no error */
}
