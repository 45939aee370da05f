// A page that was opened as a file may not start workers. The search then runs in a hidden frame, behind the same interface.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.deliver(this, data);
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.head.append(script);
      });
      this.ready.catch((error) => this.onerror && this.onerror(error));
    }
    postMessage(data) {
      this.ready.then(() => this.deliver(this.frame.contentWindow, data));
    }
    deliver(receiver, data) {
      const copy = structuredClone(data); // as for a worker: neither side sees what the other changes later
      setTimeout(() => receiver.onmessage && receiver.onmessage({ data: copy }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
