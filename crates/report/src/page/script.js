document.querySelectorAll('.violation').forEach(function (box) {
  var steps = box.querySelectorAll('li[data-step]');
  function mark(step, on) {
    var ops = (step.dataset.ops || '').split('\n');
    step.classList.toggle('on', on);
    box.querySelectorAll('[data-op]').forEach(function (op) {
      if (ops.indexOf(op.dataset.op) >= 0) op.classList.toggle('on', on);
    });
    box.querySelectorAll('g[data-step="' + step.dataset.step + '"]').forEach(function (edge) {
      edge.classList.toggle('on', on);
    });
  }
  steps.forEach(function (step, place) {
    step.addEventListener('mouseenter', function () { mark(step, true); });
    step.addEventListener('mouseleave', function () { mark(step, false); });
    step.addEventListener('focus', function () { mark(step, true); });
    step.addEventListener('blur', function () { mark(step, false); });
    step.addEventListener('keydown', function (event) {
      var to = event.key === 'ArrowDown' ? place + 1 : event.key === 'ArrowUp' ? place - 1 : -1;
      if (steps[to]) { event.preventDefault(); steps[to].focus(); }
    });
  });
  box.querySelectorAll('g[data-step]').forEach(function (edge) {
    var step = box.querySelector('li[data-step="' + edge.dataset.step + '"]');
    if (!step) return;
    edge.addEventListener('mouseenter', function () { mark(step, true); });
    edge.addEventListener('mouseleave', function () { mark(step, false); });
    edge.addEventListener('click', function () { step.focus(); });
  });
  var walk = box.querySelector('.walk');
  if (!walk || !steps.length) return;
  var now = walk.querySelector('.now'), buttons = walk.querySelectorAll('button'), so = box.querySelector('.so'), at = -1;
  var last = steps.length - (so ? 0 : 1);
  function go(to) {
    if (steps[at]) mark(steps[at], false);
    at = Math.max(-1, Math.min(last, to));
    if (so) so.classList.toggle('on', at === steps.length);
    if (steps[at]) mark(steps[at], true);
    buttons[0].setAttribute('aria-disabled', at < 0);
    buttons[1].setAttribute('aria-disabled', at >= last);
    now.textContent = at < 0 ? '' : steps[at]
      ? 'Step ' + (at + 1) + ' of ' + steps.length + ': ' + steps[at].querySelector('.sentence').textContent
      : so.textContent;
  }
  buttons.forEach(function (button) {
    button.addEventListener('click', function () { go(at + Number(button.dataset.walk)); });
  });
  walk.addEventListener('keydown', function (event) {
    var by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by) { event.preventDefault(); go(at + by); }
  });
  walk.hidden = false;
  go(-1);
});
