// The search runs in a worker, which a browser makes from no file. Without a server it runs in a
// hidden frame instead, from when the reader looks for something: it makes the page wait.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = address;
      this.ready = new Promise(resolve => {
        const isSearch = event => event.target.matches(".md-search__input");
        addEventListener("focusin", event => isSearch(event) && resolve());
      });
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
