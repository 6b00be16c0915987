"""The part of TensorBoard's interface for programs that paijupyter uses."""

import http.server
import os
import threading


class TensorBoard:
    """Serves the names of the files of events below a folder."""

    def configure(self, argv):
        options = dict(zip(argv[1::2], argv[2::2], strict=False))
        self.folder, self.address = options["--logdir"], (options["--host"], int(options["--port"]))

    def launch(self):
        if "BROKEN" in os.environ:
            raise RuntimeError("the board is broken")
        folder = self.folder

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = sorted(
                    name for _, _, names in os.walk(folder) for name in names if "tfevents" in name
                )
                self.send_response(200)
                self.end_headers()
                self.wfile.write(" ".join(found).encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(self.address, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://{self.address[0]}:{server.server_address[1]}/"
