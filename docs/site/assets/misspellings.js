// A query that finds nothing is sent again: first with words that differ in one letter, then in two.
{
  const QUERY = 2, RESULT = 3; // kinds of messages of Material's search
  const SEPARATORS = /[\s\-,:!=[\]()"`/.;+*~^]+/;
  const send = Worker.prototype.postMessage;

  function loose(query, letters) {
    const words = query.split(SEPARATORS).filter(word => word);
    return words.map(word => (word.length > letters + 2 ? `${word}~${letters}` : word)).join(" ");
  }

  function again({ target, data: { type, data } }) {
    if (type !== RESULT || data.items.length || target.letters === 2) return;
    target.letters += 1;
    send.call(target, { type: QUERY, data: loose(target.query, target.letters) });
  }

  Worker.prototype.postMessage = function (message) {
    if (message.type === QUERY) {
      if (this.query === undefined) this.addEventListener("message", again);
      [this.query, this.letters] = [message.data, 0];
    }
    send.call(this, message);
  };
}
