"""Shows a folder at a port of this machine: serve.py FOLDER PORT"""

import functools
import http.server
import sys

handler = functools.partial(http.server.SimpleHTTPRequestHandler,
                            directory=sys.argv[1])
try:
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", int(sys.argv[2])), handler)
except OSError as error:
    sys.exit(f"fusebook: port {sys.argv[2]} cannot be used ({error.strerror});"
             " choose another with --port")
print(f"Read it at http://127.0.0.1:{sys.argv[2]}/ (Ctrl-C ends)", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(130)
