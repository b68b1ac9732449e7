// What stands between clients and servers.
//
//   front.mjs tls PORT TO KEY CERT   ends TLS, and passes the rest to a port
//   front.mjs proxy PORT             an HTTP proxy that knows CONNECT, and says so

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createServer as createTls } from 'node:tls';

const [kind, port, ...rest] = process.argv.slice(2);

function join(a, b) {
    a.pipe(b).pipe(a);
    for (const socket of [a, b]) {
        socket.on('error', () => (a.destroy(), b.destroy()));
    }
}

if (kind === 'tls') {
    const [to, key, cert] = rest;
    const files = { key: readFileSync(key), cert: readFileSync(cert), ALPNProtocols: ['http/1.1'] };
    createTls(files, (socket) => join(socket, connect(Number(to), '127.0.0.1'))).listen(Number(port), '127.0.0.1');
} else {
    const proxy = createServer((_, response) => response.writeHead(405).end());
    proxy.on('connect', (request, socket) => {
        console.log(`CONNECT ${request.url}`);
        const server = connect(Number(request.url.split(':')[1]), '127.0.0.1', () => {
            socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
            join(socket, server);
        });
        server.on('error', () => socket.destroy());
    });
    proxy.listen(Number(port), '127.0.0.1');
}
